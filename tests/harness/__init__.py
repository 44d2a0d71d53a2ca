"""What the tests are made with: real processes, a table that holds the truth, and the rules to judge it by.

The truth about what ran is the table `probe`, which the tasks themselves write, and the broker's messages; never only
the product's own tables.
"""
