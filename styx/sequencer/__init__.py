"""The sequencer: which requests form an epoch, under which transaction ids, and the record that lets a replay do
the same.
"""
