"""What an object must be like before anything runs with it.
"""
