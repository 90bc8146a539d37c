-- prune_shared_keys: delete a batch of shared keys that expired long ago and that no request refers to, longest first.
-- The foreign key cannot refuse it: no request is let in under an expired key, and one that came all the same could not
-- commit while the key is locked. A key somebody else has locked comes with a later batch.
-- Raw for SKIP LOCKED with an order. Served by shared_keys_expires_at, and by waiting_prompts_shared_key, which the
-- foreign key's check uses too.
DELETE FROM shared_keys
 WHERE id = ANY(ARRAY(
           SELECT id
             FROM shared_keys AS ended
            WHERE expires_at <= %(ended_before)s
              AND NOT EXISTS (
                      SELECT 1
                        FROM waiting_prompts
                       WHERE shared_key_id = ended.id
                  )
            ORDER BY expires_at, id
            LIMIT %(limit)s
              FOR UPDATE SKIP LOCKED
       ))
