"""Tables and figures that one prints, and the text of numbers."""
