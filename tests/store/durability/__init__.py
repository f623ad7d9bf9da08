"""What a store keeps when its process, its disk or its files fail."""
