"""Workloads: the paper's twelve queries (Appendix A), SSB and Nexmark, and streams of events to run them on (§6)."""
