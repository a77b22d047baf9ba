"""Options of commands, a file for each reason to change them; `shared` are those of several."""
