"""What a file of weights holds, to look into."""
