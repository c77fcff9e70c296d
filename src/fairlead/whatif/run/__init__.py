"""Runs experiments; recorders collect the outcome."""
