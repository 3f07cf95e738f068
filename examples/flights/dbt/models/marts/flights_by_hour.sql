{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['origin', 'scheduled_hour']) }}

select
    origin,
    scheduled_hour,
    cast(count(*) as integer) as flights,
    cast(count(*) filter (where cancelled) as integer) as cancelled_flights,
    cast(avg(dep_delay) as numeric(8, 2)) as mean_departure_delay
from {{ ref('stg_flights') }}
{% if is_incremental() %}
-- Delays are reported late: the last week is counted anew.
where scheduled_hour >= (select max(scheduled_hour) - interval '7 days' from {{ this }})
{% endif %}
group by origin, scheduled_hour
