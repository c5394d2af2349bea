-- Nexmark: an online auction as Flink's queries see it, and the questions q0 to q22 that a view can answer.
-- Only "INSERT INTO sink" and the quotes around dateTime are left out. q13 reads its side input as it is now.
-- q14 counts letters by length and replace, where Flink has a function of the benchmark's own.
-- q6 is Flink's, which cannot run it: "WHERE rownum <= 1" stands one query further out, as in RisingWave's.
-- Not here: q12 (windows of processing time).

CREATE STREAM person (
  id BIGINT NOT NULL, name VARCHAR NOT NULL, emailAddress VARCHAR NOT NULL, creditCard VARCHAR NOT NULL,
  city VARCHAR NOT NULL, state VARCHAR NOT NULL, dateTime TIMESTAMP NOT NULL, extra VARCHAR NOT NULL);
CREATE STREAM auction (
  id BIGINT NOT NULL, itemName VARCHAR NOT NULL, description VARCHAR NOT NULL, initialBid BIGINT NOT NULL,
  reserve BIGINT NOT NULL, dateTime TIMESTAMP NOT NULL, expires TIMESTAMP NOT NULL, seller BIGINT NOT NULL,
  category BIGINT NOT NULL, extra VARCHAR NOT NULL);
CREATE STREAM bid (
  auction BIGINT NOT NULL, bidder BIGINT NOT NULL, price BIGINT NOT NULL, channel VARCHAR NOT NULL,
  url VARCHAR NOT NULL, dateTime TIMESTAMP NOT NULL, extra VARCHAR NOT NULL);
CREATE TABLE side_input (key BIGINT NOT NULL, value VARCHAR NOT NULL);

-- query q0
SELECT auction, bidder, price, dateTime, extra FROM bid;

-- query q1
SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid;

-- query q2
SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0;

-- query q3
SELECT P.name, P.city, P.state, A.id
FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');

-- query q4
SELECT Q.category, AVG(Q.final)
FROM (
    SELECT MAX(B.price) AS final, A.category
    FROM auction A, bid B
    WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
    GROUP BY A.id, A.category
) Q
GROUP BY Q.category;

-- query q5
SELECT AuctionBids.auction, AuctionBids.num
FROM (
    SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
) AS AuctionBids
JOIN (
    SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
    FROM (
        SELECT count(*) AS num, window_start AS starttime, window_end AS endtime
        FROM TABLE(HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
        GROUP BY auction, window_start, window_end
    ) AS CountBids
    GROUP BY CountBids.starttime, CountBids.endtime
) AS MaxBids
ON AuctionBids.starttime = MaxBids.starttime
   AND AuctionBids.endtime = MaxBids.endtime
   AND AuctionBids.num >= MaxBids.maxn;

-- query q6
SELECT Q.seller, AVG(Q.price) OVER (PARTITION BY Q.seller ORDER BY Q.dateTime ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
FROM (
    SELECT A.id, A.seller, B.price, B.dateTime,
           ROW_NUMBER() OVER (PARTITION BY A.id, A.seller ORDER BY B.price DESC) AS rownum
    FROM auction AS A, bid AS B
    WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
) AS Q
WHERE rownum <= 1;

-- query q7
SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
FROM bid B
JOIN (
    SELECT MAX(price) AS maxprice, window_end AS dateTime
    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
    GROUP BY window_start, window_end
) B1
ON B.price = B1.maxprice
WHERE B.dateTime BETWEEN B1.dateTime - INTERVAL '10' SECOND AND B1.dateTime;

-- query q8
SELECT P.id, P.name, P.starttime
FROM (
    SELECT id, name, window_start AS starttime, window_end AS endtime
    FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
    GROUP BY id, name, window_start, window_end
) P
JOIN (
    SELECT seller, window_start AS starttime, window_end AS endtime
    FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
    GROUP BY seller, window_start, window_end
) A
ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime;

-- query q9
SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra, auction, bidder,
       price, bid_dateTime, bid_extra
FROM (
    SELECT A.*, B.auction, B.bidder, B.price, B.dateTime AS bid_dateTime, B.extra AS bid_extra,
           ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) AS rownum
    FROM auction A, bid B
    WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
)
WHERE rownum <= 1;

-- query q10
SELECT auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d'), strftime(dateTime, '%H:%M') FROM bid;

-- query q11
SELECT
    B.bidder,
    count(*) as bid_count,
    SESSION_START(B.dateTime, INTERVAL '10' SECOND) as starttime,
    SESSION_END(B.dateTime, INTERVAL '10' SECOND) as endtime
FROM bid B
GROUP BY B.bidder, SESSION(B.dateTime, INTERVAL '10' SECOND);

-- query q13
SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
FROM bid AS B JOIN side_input AS S ON mod(B.auction, 10000) = S.key;

-- query q14
SELECT auction, bidder, 0.908 * price AS price,
       CASE
           WHEN HOUR(dateTime) >= 8 AND HOUR(dateTime) <= 18 THEN 'dayTime'
           WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime'
           ELSE 'otherTime'
       END AS bidTimeType,
       dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;

-- query q15
SELECT strftime(dateTime, '%Y-%m-%d') AS day,
       count(*) AS total_bids,
       count(*) filter (where price < 10000) AS rank1_bids,
       count(*) filter (where price >= 10000 and price < 1000000) AS rank2_bids,
       count(*) filter (where price >= 1000000) AS rank3_bids,
       count(distinct bidder) AS total_bidders,
       count(distinct bidder) filter (where price < 10000) AS rank1_bidders,
       count(distinct bidder) filter (where price >= 10000 and price < 1000000) AS rank2_bidders,
       count(distinct bidder) filter (where price >= 1000000) AS rank3_bidders,
       count(distinct auction) AS total_auctions,
       count(distinct auction) filter (where price < 10000) AS rank1_auctions,
       count(distinct auction) filter (where price >= 10000 and price < 1000000) AS rank2_auctions,
       count(distinct auction) filter (where price >= 1000000) AS rank3_auctions
FROM bid
GROUP BY strftime(dateTime, '%Y-%m-%d');

-- query q16
SELECT channel,
       strftime(dateTime, '%Y-%m-%d') AS day,
       max(strftime(dateTime, '%H:%M')) AS minute,
       count(*) AS total_bids,
       count(*) filter (where price < 10000) AS rank1_bids,
       count(*) filter (where price >= 10000 and price < 1000000) AS rank2_bids,
       count(*) filter (where price >= 1000000) AS rank3_bids,
       count(distinct bidder) AS total_bidders,
       count(distinct bidder) filter (where price < 10000) AS rank1_bidders,
       count(distinct bidder) filter (where price >= 10000 and price < 1000000) AS rank2_bidders,
       count(distinct bidder) filter (where price >= 1000000) AS rank3_bidders,
       count(distinct auction) AS total_auctions,
       count(distinct auction) filter (where price < 10000) AS rank1_auctions,
       count(distinct auction) filter (where price >= 10000 and price < 1000000) AS rank2_auctions,
       count(distinct auction) filter (where price >= 1000000) AS rank3_auctions
FROM bid
GROUP BY channel, strftime(dateTime, '%Y-%m-%d');

-- query q17
SELECT auction,
       strftime(dateTime, '%Y-%m-%d') AS day,
       count(*) AS total_bids,
       count(*) filter (where price < 10000) AS rank1_bids,
       count(*) filter (where price >= 10000 and price < 1000000) AS rank2_bids,
       count(*) filter (where price >= 1000000) AS rank3_bids,
       min(price) AS min_price,
       max(price) AS max_price,
       avg(price) AS avg_price,
       sum(price) AS sum_price
FROM bid
GROUP BY auction, strftime(dateTime, '%Y-%m-%d');

-- query q18
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS rank_number FROM bid
)
WHERE rank_number <= 1;

-- query q19
SELECT * FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid
)
WHERE rank_number <= 10;

-- query q20
SELECT auction, bidder, price, channel, url, B.dateTime, B.extra,
       itemName, description, initialBid, reserve, A.dateTime AS ADateTime, expires, seller, category, A.extra AS Aextra
FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
WHERE A.category = 10;

-- query q21
SELECT auction, bidder, price, channel,
       CASE
           WHEN lower(channel) = 'apple' THEN '0'
           WHEN lower(channel) = 'google' THEN '1'
           WHEN lower(channel) = 'facebook' THEN '2'
           WHEN lower(channel) = 'baidu' THEN '3'
           ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
       END AS channel_id
FROM bid
WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
   OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu');

-- query q22
SELECT auction, bidder, price, channel,
       SPLIT_PART(url, '/', 4) AS dir1, SPLIT_PART(url, '/', 5) AS dir2, SPLIT_PART(url, '/', 6) AS dir3
FROM bid;
