"""Photos labelled by people, on a page and by keyboard: what they said, how far they agree, and what it becomes."""
