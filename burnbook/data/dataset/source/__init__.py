"""Where data comes from: downloads, Hugging Face."""
