-- chat_candidates: the requests a chat worker could take, best first, at most %(limit)s.
-- Raw for the loose index scan: `masks` jumps from one feature mask to the next that waits for this model, the head of each
-- mask the worker covers is read in queue order, and the heads are merged. Requests that need more than the worker has are
-- never touched, however many wait ahead. Requests past their expiry are passed over until they are swept.
-- Nothing is locked; the claim decides. Served by queue_rows_in_order and the primary key of waiting_prompts.
WITH RECURSIVE masks AS (
    (
        SELECT feature_mask
          FROM queue_rows
         WHERE is_chat
           AND model = %(model)s
         ORDER BY feature_mask
         LIMIT 1
    )
    UNION ALL
    SELECT (
               SELECT queue_rows.feature_mask
                 FROM queue_rows
                WHERE queue_rows.is_chat
                  AND queue_rows.model = %(model)s
                  AND queue_rows.feature_mask > masks.feature_mask
                ORDER BY queue_rows.feature_mask
                LIMIT 1
           )
      FROM masks
     WHERE masks.feature_mask IS NOT NULL
)
SELECT head.request_id
  FROM masks
 CROSS JOIN LATERAL (
           SELECT queue_rows.request_id, queue_rows.order_key, queue_rows.created
             FROM queue_rows
            WHERE queue_rows.is_chat
              AND queue_rows.model = %(model)s
              AND queue_rows.feature_mask = masks.feature_mask
              AND queue_rows.max_length <= %(max_length)s
              AND queue_rows.max_context_length <= %(max_context_length)s
              AND (NOT %(own_only)s OR queue_rows.user_id = %(owner_id)s)
              AND EXISTS (
                      SELECT 1
                        FROM waiting_prompts
                       WHERE waiting_prompts.id = queue_rows.request_id
                         AND waiting_prompts.expiry > %(now)s
                  )
            ORDER BY queue_rows.order_key DESC, queue_rows.created, queue_rows.request_id
            LIMIT %(limit)s
       ) AS head
 WHERE masks.feature_mask & ~%(feature_mask)s::bigint = 0
 ORDER BY head.order_key DESC, head.created, head.request_id
 LIMIT %(limit)s
