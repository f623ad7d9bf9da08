"""The promises of a store when its process, its disk or its files fail."""
