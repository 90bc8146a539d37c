-- charge_shared_key: count kudos against a shared key, down to nothing left. No row is touched when less is left than is
-- needed, or nobody has the key. One conditional update, so that two charges at once never read the same rest.
-- Served by the primary key.
UPDATE shared_keys
   SET left_kudos = greatest(left_kudos - %(kudos)s, 0),
       used_kudos = used_kudos + %(kudos)s
 WHERE id = %(shared_key_id)s
   AND (left_kudos IS NULL OR left_kudos >= %(needed)s)
