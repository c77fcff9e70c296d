"""Options that several commands share. These modules import nothing that loads slowly."""
