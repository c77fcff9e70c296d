"""CSI drivers and what they report; volume attachments and attribute classes."""
