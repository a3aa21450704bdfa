"""The mutants (changes that each break one rule), in modules by package and subject. In a module, a
comment that begins with "These mutants" is about the mutants from the comment to the next such
comment."""
