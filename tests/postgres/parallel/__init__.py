"""Tests of reads in parts."""
