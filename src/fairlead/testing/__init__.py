"""What tests of clusters and plugins are written with.

Law: nothing here is needed to run Fairlead.
"""
