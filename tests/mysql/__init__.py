"""Tests of MySQL and MariaDB, most of them on both."""
