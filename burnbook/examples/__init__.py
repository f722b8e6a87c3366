"""The book's examples, each a folder of small modules."""
