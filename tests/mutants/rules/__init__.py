"""The mutants, a module for each package."""
