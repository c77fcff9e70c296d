"""What a running replica reports about itself: log lines and traces."""
