"""One program for all sizes of what a session is fed."""
