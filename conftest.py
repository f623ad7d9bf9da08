"""The fixtures of the tests and of the documentation's examples."""

pytest_plugins = ["tests.fixtures"]
