-- waiting_slots: the slots a user has waiting, those of a request just written included. One row.
-- What is stored and not activated waits for nothing yet: of several, as many are activated as there is room for.
-- For the anonymous user, who is many people, only requests that share a model count, when the request names any.
-- A statement of its own, after the payer's account was locked: it sees what others committed until then.
-- Raw for the arrays. Served by waiting_prompts_of_user, and for the anonymous user by queue_rows_anonymous: it may have any
-- number of requests of other models waiting, and comparing the models of each took most of a second under its lock.
SELECT coalesce(sum(n), 0)::integer AS count
  FROM (
           SELECT n
             FROM waiting_prompts
            WHERE %(any_models)s
              AND user_id = %(user_id)s
              AND n > 0
              AND active
              AND NOT faulted
            UNION ALL
           SELECT n
             FROM waiting_prompts
            WHERE NOT %(any_models)s
              AND id IN (SELECT request_id FROM queue_rows WHERE user_id = 0 AND model = ANY(%(models)s::varchar[]))
              AND n > 0
              AND active
              AND NOT faulted
       ) AS waiting
