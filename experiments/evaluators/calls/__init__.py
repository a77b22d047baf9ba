"""Which calls an evaluation makes first, when it stops, and what all of them would cost."""
