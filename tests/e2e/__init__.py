"""End-to-end tests: several real programs together. A package, so that its fixtures can end with
its last test."""
