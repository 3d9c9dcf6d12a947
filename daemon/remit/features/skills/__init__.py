"""Skills, manifests and extensions in folders: read, watched, handed out."""
