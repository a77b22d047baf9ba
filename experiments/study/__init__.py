"""What a study may say: its configuration, its design, and the data that it reads."""
