-- owners_workers: how many workers a user has, in all and at an address. One row.
-- Raw for the filtered counts in one round trip. Served by the index on workers.user_id.
SELECT count(*) AS all,
       count(*) FILTER (WHERE ipaddr = %(address)s::inet) AS at_address
  FROM workers
 WHERE user_id = %(user_id)s
