"""Training where environments live on the host."""
