"""What Flight SQL alone has."""
