"""What ordered access paths are worth: time per event as the book grows, and rates beside programs written by hand."""
