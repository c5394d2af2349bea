"""A job is one SQL script that says where its rows come from: ``CREATE STREAM … WITH (connector = …)``."""
