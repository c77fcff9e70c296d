"""Options that several commands share; these modules import nothing large."""
