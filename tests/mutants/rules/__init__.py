"""The mutants (changes that each break one rule), in modules by package and subject."""
