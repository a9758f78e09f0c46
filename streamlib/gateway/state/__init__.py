"""What clients lose of a response, kept for them, and put back into their next request."""
