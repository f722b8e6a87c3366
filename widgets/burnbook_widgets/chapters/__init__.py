"""What makes a page a chapter: exercises, answers, tidy pages."""
