"""The process that reads topics which others own, and sends their records to an app's ingests."""
