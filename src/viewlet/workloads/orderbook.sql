-- The order book that comes with viewlet: `viewlet run`, on this machine or on Spark.
CREATE STREAM bids (
  t DOUBLE NOT NULL, id BIGINT NOT NULL, broker_id BIGINT NOT NULL, volume DOUBLE NOT NULL, price DOUBLE NOT NULL
) WITH (connector = 'orderbook', events = 500000, events_per_batch = 20000);
CREATE STREAM asks (
  t DOUBLE NOT NULL, id BIGINT NOT NULL, broker_id BIGINT NOT NULL, volume DOUBLE NOT NULL, price DOUBLE NOT NULL
) WITH (connector = 'orderbook', events = 500000, events_per_batch = 20000);

-- What each broker offers, and his best price.
CREATE MATERIALIZED VIEW book AS
SELECT broker_id, count(*) AS orders, sum(volume) AS volume, max(price) AS best
FROM   bids GROUP BY broker_id;

-- The price of the uppermost quarter of all bids, weighted by volume (the paper's VWAP, divided).
CREATE MATERIALIZED VIEW vwap AS
SELECT sum(b1.price * b1.volume) / sum(b1.volume) AS price FROM bids b1
WHERE  0.25 * (SELECT sum(b3.volume) FROM bids b3)
       > (SELECT sum(b2.volume) FROM bids b2 WHERE b2.price > b1.price);

-- Where bids and asks of a broker are more than 1000 apart (the paper's AXF).
CREATE MATERIALIZED VIEW axf AS
SELECT b.broker_id, sum(a.volume - b.volume) AS imbalance
FROM   bids b, asks a
WHERE  b.broker_id = a.broker_id AND (a.price - b.price > 1000 OR b.price - a.price > 1000)
GROUP BY b.broker_id;
