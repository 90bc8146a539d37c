-- end_fake: end a fake generation as if its reply were stored, so that a second one is refused as ever. No row is touched
-- when it ended before. Served by the primary key.
UPDATE processing_gens
   SET generation = '',
       finished_at = %(now)s
 WHERE id = %(generation_id)s
   AND fake
   AND generation IS NULL
   AND NOT faulted
