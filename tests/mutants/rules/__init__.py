"""The mutants. There is one module for each package."""
