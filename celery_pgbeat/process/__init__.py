"""What a process of ours is: its id, and threads that last as long as it does."""
