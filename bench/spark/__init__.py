"""What keeping views fresh on Spark costs, beside Spark itself: rates, overhead, growth, recomputation, cells."""
