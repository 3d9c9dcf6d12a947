"""What use teaches discovery, and for whom that counts."""
