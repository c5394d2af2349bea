"""The native engine: trigger programs as generated C++ on a small runtime of our own."""
