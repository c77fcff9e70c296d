"""Options that several commands share; modules here import nothing heavy."""
