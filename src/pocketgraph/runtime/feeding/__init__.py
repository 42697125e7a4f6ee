"""What goes in: feeds as callers give them, from files, or made up where nobody gives any."""
