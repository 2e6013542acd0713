"""Reading what users may have put somewhere, with no more rights than those users have.

Imports nothing: the child that opens the files starts from here.
"""
